# What `blindcore bench sum --peers target/peers` measures itself against; benches/peers/README.md says what they do.

.PHONY: peers

PEERS = target/peers

peers: tools-peers
	@sh benches/peers/gmp/build.sh $(PEERS)/build
	@cmp -s $(PEERS)/build/cargo/release/gmp $(PEERS)/gmp || cp $(PEERS)/build/cargo/release/gmp $(PEERS)/gmp
	@cmp -s benches/peers/phe/requirements.txt $(PEERS)/venv/requirements.txt || { \
	    echo "installing python-paillier into $(PEERS)/venv" >&2 && \
	    python3 -m venv --clear $(PEERS)/venv && \
	    $(PEERS)/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	        --requirement benches/peers/phe/requirements.txt && \
	    cp benches/peers/phe/requirements.txt $(PEERS)/venv/; }
	@cmp -s benches/peers/phe/run.sh $(PEERS)/phe || cp benches/peers/phe/run.sh $(PEERS)/phe
	@chmod +x $(PEERS)/phe

.PHONY: tools-peers
tools-peers:
	@sh scripts/tools.sh cargo cc m4 python3
