"""What ``form-kernels`` is made of: groups, rules, costs, and kernels cut out as functions."""
