"""What the benchmarks share: workloads, rivals, and how they are measured."""
