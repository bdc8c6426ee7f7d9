# Every target of this file works on a fresh clone; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The places that are named here hold, whatever the caller's environment says.
unexport CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR CARGO_BUILD_TARGET

# What the demo runs, in the profile and with the features of the tests: whoever has built one has built most of the other.
# (Without --workspace or without an example, cargo would choose other features for some libraries, and build them again.)
build-demo := cargo build --locked --workspace --bins --example demo
step = @printf '\n[%s] %s\n'

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## start a cluster, a simulated platform and the operator; show them at work; stay up until Ctrl-C

.PHONY: demo-once
demo-once: ## the same, and leave: fails when a step does not come out as it should

demo demo-once:
	$(step) '1 of 3' 'the control plane: 6 to 8 min the first time, then at once'
	@tests/control-plane/build
	$(step) '2 of 3' 'the programs: about 3 min the first time, then seconds'
	@$(build-demo)
	$(step) '3 of 3' 'the demo: about half a minute'
	@target/debug/examples/demo $(if $(filter demo-once,$@),--once)

.PHONY: playground
playground: ## the same with nothing declared, for whoever follows the book: in another terminal, `source target/playground` (name=second: a second one beside it, in target/second)
	$(step) '1 of 3' 'the control plane: 6 to 8 min the first time, then at once'
	@tests/control-plane/build
	$(step) '2 of 3' 'the programs: about 3 min the first time, then seconds'
	@$(build-demo)
	$(step) '3 of 3' 'the playground: about ten seconds'
	@target/debug/examples/demo --playground target/$(or $(name),playground)

.PHONY: build
build: ## the programs, optimized: target/release/dbplane and target/release/dbplane-simulator
	cargo build --release --locked --workspace --bins

.PHONY: control-plane
control-plane: ## etcd, kube-apiserver, kube-controller-manager and kubectl for the demo and the cluster tests
	@tests/control-plane/build

.PHONY: test
test: ## every test, including those that need a cluster
	$(step) '1 of 3' 'the control plane: 6 to 8 min the first time, then at once'
	@tests/control-plane/build
	@tests/ecosystem/status/build
	$(step) '2 of 3' 'the tests: about 5 min the first time (2 min after the demo), then seconds'
	@cargo test --locked --workspace --no-run
	$(step) '3 of 3' 'running them: about 19 min'
	@tests/run

# Those that are left out are about ClusterAccounts, several namespaces, the end of a namespace (its Roles go with it), or start the operator by themselves.
.PHONY: test-namespaced
test-namespaced: control-plane ## the operator's tests once more, each with an operator that has Roles in its namespace alone (5 min)
	DBPLANE_TEST_RIGHTS=namespaced RUST_TEST_THREADS=6 cargo test --locked --test operator -- \
		--skip alone:: --skip claims:: --skip deletes:: --skip another_namespace --skip a_namespace_ --skip cluster_account_ --skip scaling_down_passes_the_brake

.PHONY: book
book: ## the book of docs/SUMMARY.md in target/book (2 min the first time)
	@docs/build

.PHONY: ecosystem
ecosystem: ## real servers and clients: PostgreSQL and its clients, helm, public clients of the platform with the simulator, its console in Chromium; a release of what is here, and its images
	@tests/control-plane/build openssl
	@tests/ecosystem/build
	@SNAPSHOT=1 IMAGE=registry.example/dbplane release/make release "$$(release/make version)-snapshot"
	cargo test --locked --test ecosystem

.PHONY: console-pictures
console-pictures: ## take the pictures of the simulator's console anew, in docs/guide/console (4 min the first time)
	@tests/ecosystem/build browser
	DBPLANE_CONSOLE_PICTURES=1 cargo test --locked --test ecosystem -- console::pictures

.PHONY: terminal-picture
terminal-picture: control-plane ## record the terminal of docs/start/lost-answer.md in docs/at-work.svg (half a minute)
	@$(build-demo)
	DBPLANE_RECORD_TERMINAL=1 cargo test --locked --test book -- a_create_whose_answer_is_lost_is_not_repeated

.PHONY: record-objects
record-objects: control-plane ## record what the version before this one leaves in the midst of everything, for the tests of upgrades (8 min)
	@tests/ecosystem/build former
	DBPLANE_RECORD_OBJECTS=1 cargo test --locked --test ecosystem -- upgrade::taking_over

.PHONY: image
image: ## images of both programs in target/image, with what is in them and where it comes from (8 min the first time; IMAGE=registry.example/dbplane: their name)
	@release/make image

.PHONY: image-reproducible
image-reproducible: ## build the images of this commit in two folders: do they have the same bytes? (half an hour)
	@release/reproduce

.PHONY: release
release: control-plane ## all that a release publishes, in target/dist/VERSION: make release VERSION=0.1.0 IMAGE=registry.example/dbplane
	@tests/ecosystem/build helm
	@release/make release "$(VERSION)"

.PHONY: verify
verify: control-plane ## every request of every scenario gone wrong, the model, random histories (point=create-key:kill-after:7 repeats one)
	cargo build --release --locked --bin dbplane --example verify
ifeq ($(point)$(scenario)$(pairs)$(model),)
	PROPTEST_CASES=1000 cargo test --release --locked --test properties
	@target/release/examples/verify
else
	@target/release/examples/verify $(if $(point),--point $(point)) $(if $(scenario),--scenario $(scenario)) $(if $(pairs),--pairs $(pairs)) $(if $(model),--model '$(model)')
endif

.PHONY: mutants
mutants: ## change the decisions and the steps, one thing at a time: do the tests notice? On lines that have changed since the version before (an hour; since=COMMIT: since another one; shard=7/64: a part of everything)
	@.ci/mutants $(if $(shard),--shard $(shard),--since $(if $(since),$(since),$$(cat tests/upgrade/before)))

.PHONY: lint
lint: ## clippy on everything; warnings are errors (shellcheck too, where it is installed)
	cargo clippy --workspace --locked --all-targets -- -D warnings
	cargo clippy --locked --test ecosystem -- -D warnings
	@if command -v shellcheck >/dev/null; \
	then shellcheck .ci/run .ci/cargo-tool .ci/mutants .ci/rust docs/build docs/pictures/make release/make release/packages release/publish release/reproduce release/rustc tests/run tests/control-plane/build tests/ecosystem/build tests/ecosystem/contained tests/ecosystem/status/build tests/support/watchdog.sh && echo "shellcheck: no complaints"; \
	else echo "shellcheck is not installed: the shell scripts were not linted"; fi

.PHONY: fmt
fmt: ## format the Rust code
	cargo fmt --all

.PHONY: check-fmt
check-fmt: ## fail when the Rust code is not formatted
	cargo fmt --all --check

.PHONY: crds
crds: ## write the custom resource definitions into crds/ anew
	@$(build-demo)
	target/debug/dbplane crds --dir crds

.PHONY: check-crds
check-crds: ## fail when crds/ is not what the code generates
	@$(build-demo)
	target/debug/dbplane crds --dir crds --check

.PHONY: metrics
metrics: ## write docs/metrics.md again: the metrics that the program exposes (a test compares them)
	@DBPLANE_WRITE_REFERENCE=1 cargo test --locked --test offline -- reference::metrics

.PHONY: reference
reference: ## write docs/reference, docs/metrics.md, the chart's README and deploy/prometheus again, from the program, values.yaml and rules.yaml (a test compares them)
	@DBPLANE_WRITE_REFERENCE=1 cargo test --locked --test offline -- reference::

.PHONY: cron-times
cron-times: ## write src/decide/cron/*.tsv anew: when schedules come, by the library of CronJob and by croniter (a test compares them)
	@cd tests/cron && go run . <schedules.txt >../../src/decide/cron/times.tsv
	@python3 -m venv target/cron && target/cron/bin/pip install --quiet --require-hashes -r tests/cron/requirements.txt
	@target/cron/bin/python tests/cron/last.py <tests/cron/last.txt >src/decide/cron/last.tsv

.PHONY: pictures
pictures: ## draw docs/pictures/*.svg anew from the .mmd files beside them, in a Chromium of Debian's packages (a test compares their hashes)
	@tests/ecosystem/build browser
	@docs/pictures/make

.PHONY: audit
audit: ## licences, sources and duplicates of the dependencies (deny.toml)
	@.ci/cargo-tool deny check bans licenses sources

.PHONY: advisories
advisories: ## known vulnerabilities of the dependencies: downloads the database of advisories from GitHub
	@.ci/cargo-tool deny check advisories

.PHONY: live-check
live-check: ## look at a platform only by reading: url=https://…/api/v2 key=FILE [organization=ID] [project=ID]
	@$(if $(and $(url),$(key)),,printf 'live-check: name the platform and the file with its API key: make live-check url=https://platform.example/api/v2 key=FILE\n' >&2; exit 2;) \
		cargo run --quiet --locked --bin dbplane -- account check --base-url $(url) --api-key $(key) $(if $(organization),--organization $(organization)) $(if $(project),--project $(project))

.PHONY: clean
clean: ## remove everything that was built here (the control plane stays in the user's cache folder)
	cargo clean

.PHONY: bench
bench: build control-plane ## times, requests and memory at 100 and 1,000 Computes beside what they cost at least (sizes=100,1000,10000: others; limited=0: nothing under the platform's limit; worst=0: no 10,000 of the worst objects)
	@cargo run --release --locked --example bench -- $(if $(sizes),--sizes $(sizes)) $(if $(limited),--limited $(limited)) $(if $(worst),--worst $(worst))

.PHONY: bench-quick
bench-quick: control-plane ## fail when a create, the quiet or a restart takes more requests or writes than it should, or when a hostile tenant takes too much (3 min)
	cargo build --locked --workspace --bins --example bench
	@target/debug/examples/bench --sizes 50 --limited 0 --worst 0 --hostile 200 --quiet-seconds 30 --operator target/debug/dbplane --json target/bench-quick.json --check
