"""What every training here needs: checkpoints, model choice, optimisers, batches, devices."""
