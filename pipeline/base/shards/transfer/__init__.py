"""Files travel over Dask's connections to workers that do not see the disk of the host that asks."""
