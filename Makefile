.PHONY: demo test check lock bench
demo test check lock:
	@scripts/$@
bench:
	@benchmarks/run
