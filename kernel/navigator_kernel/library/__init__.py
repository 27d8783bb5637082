"""The kernel as a library; the package `navigator_kernel` exports its public names."""
