"""Names of files: ours, and what of a client's is used: which of a few known endings it has, and nothing else."""

NETCDF, REPORT = "reconstruction.nc", "report.html"

_KINDS = {
    "csv": ("csv", "tsv", "txt"),
    "parquet": ("parquet",),
    "nc": ("nc", "nc4", "cdf", "h5", "hdf5"),
}


def kind_of(name: str) -> str | None:
    """The kind of file that a name promises.

    >>> kind_of("../../Stations.CSV"), kind_of("reanalysis.nc4"), kind_of("run.sh")
    ('csv', 'nc', None)
    """
    ending = name.rpartition(".")[2].lower()
    return next((kind for kind, endings in _KINDS.items() if ending in endings), None)
