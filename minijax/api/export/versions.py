"""The versions of the calling convention of exported programs."""

minimum_supported_calling_convention_version, maximum_supported_calling_convention_version = 9, 10
VERSIONS = range(minimum_supported_calling_convention_version, maximum_supported_calling_convention_version + 1)
