"""The commands of published studies and benchmarks: reproduce, tasks, lm-eval."""
