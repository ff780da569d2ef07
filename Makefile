# Development needs Python 3.11 and Debian's base tools; everything else comes into .venv.
links:  ## build/links/xcc: the package as one folder of links, for mypy and for running from a checkout
	@rm -rf build/links && mkdir -p build/links/xcc
	@cd build/links/xcc && for f in ../../../xcc/*; do ln -s $$f .; done
	@cd build/links/xcc && for d in dialects passes frontends targets runtime interpreter tools; do ln -s ../../../$$d $$d; done
.PHONY: links
