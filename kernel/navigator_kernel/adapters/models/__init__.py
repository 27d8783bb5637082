"""Language models over their providers' protocols."""
