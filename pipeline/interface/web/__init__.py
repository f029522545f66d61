"""What every local page shares: protection, serving, frame and style."""
