.PHONY: demo test test-cluster check lock bench
demo test test-cluster check lock:
	@scripts/$@
bench:
	@benchmarks/run
