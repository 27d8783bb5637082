"""The kernel as a library; its public names are those of the package `navigator_kernel`."""
