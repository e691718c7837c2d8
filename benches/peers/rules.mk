# What `blindcore bench sum --peers target/peers` and `blindcore bench circuit --peers target/peers/circuit` measure themselves
# against; benches/peers/README.md says what they do.

.PHONY: peers

# The programs, and nothing else; what they are made of lies in PEERS_TOOLS.
PEERS = target/peers
PEERS_TOOLS = target/tools/peers

peers: tools-peers
	@sh benches/peers/gmp/build.sh $(PEERS_TOOLS)
	@mkdir -p $(PEERS)
	@cmp -s $(PEERS_TOOLS)/cargo/release/gmp $(PEERS)/gmp || cp $(PEERS_TOOLS)/cargo/release/gmp $(PEERS)/gmp
	@cmp -s benches/peers/python/requirements.txt $(PEERS_TOOLS)/venv/requirements.txt || { \
	    echo "installing python-paillier and HEU into $(PEERS_TOOLS)/venv" >&2 && \
	    python3 -m venv --clear $(PEERS_TOOLS)/venv && \
	    $(PEERS_TOOLS)/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	        --requirement benches/peers/python/requirements.txt && \
	    cp benches/peers/python/requirements.txt $(PEERS_TOOLS)/venv/; }
	@for peer in phe heu; do \
	    $(PEERS_TOOLS)/venv/bin/python -c "import $$peer" || { echo "this Python has no package of it: $$peer is left out" >&2; rm -f $(PEERS)/$$peer; continue; }; \
	    cmp -s benches/peers/python/run.sh $(PEERS)/$$peer || cp benches/peers/python/run.sh $(PEERS)/$$peer; \
	    chmod +x $(PEERS)/$$peer; \
	done

# emp-toolkit, where its libraries are built: make peers-emp EMP=FOLDER
.PHONY: peers-emp
peers-emp:
	@test -n "$(EMP)" || { echo "say where emp-toolkit is built: make peers-emp EMP=FOLDER" >&2; exit 1; }
	@sh benches/peers/emp/build.sh "$(EMP)" $(PEERS_TOOLS)/emp
	@mkdir -p $(PEERS)/circuit
	@cmp -s $(PEERS_TOOLS)/emp/emp $(PEERS)/circuit/emp || cp $(PEERS_TOOLS)/emp/emp $(PEERS)/circuit/emp

.PHONY: tools-peers
tools-peers:
	@sh scripts/tools.sh cargo cc m4 python3
