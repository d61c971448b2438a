"""The nouns, as pure data and rules: model, cluster, software, workload, plan, estimate."""
