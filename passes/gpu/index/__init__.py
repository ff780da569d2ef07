"""What is known of indices and addresses: values, divisors, bounds, what a workgroup shares."""
