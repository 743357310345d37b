# `make demo` and `make test` are all that a newcomer needs; both install what is missing. `make help` lists all.

.PHONY: help all packages build program quick test check fmt clippy deny site demo nightly kills test-ublk test-kernel test-lab test-lab-stacks test-lab-owners test-lab-stays test-servers test-fleet soak dist test-dist classics validate screening page bench clean

all: build

help:
	@echo 'A newcomer needs two:'
	@echo '  make demo        all schedulers of this kernel on an emulated disk, a verdict and a page'
	@echo '  make test        the real thing once in each kind: devices, filesystems, a server, apply and undo, kills, the page'
	@echo 'The program:'
	@echo '  make build       target/release/spindle, optimised'
	@echo '  make dist        static binaries and Debian packages; make test-dist tries them'
	@echo 'Tests:'
	@echo '  make quick       without root, devices, servers: models, statistics, parsers, the rules of the house'
	@echo '  make test'
	@echo '  make check       both and all others, format, lints, licences, the site of documents; .ci/run adds make test-servers'
	@echo '  make nightly     hundreds of kills, soak, fleet, packages, the laboratory'
	@echo '  tools/test WORD  those whose name has WORD in it; tools/tiers shows tiers and times'
	@echo 'One at a time: fmt clippy deny site test-servers test-fleet test-ublk test-kernel test-lab soak kills'
	@echo 'Figures: bench classics validate screening'

packages:
	@tools/install-packages

build: packages
	cargo build --release --locked -p cli

# What the demo and the tests run: built in a third of the time, with checks for overflows.
program: packages
	@echo "Building target/debug/spindle: $$(if [ -e target/debug/spindle ]; then echo what changed; else echo 'about 4 minutes on two processors'; fi)"
	@cargo build --locked --workspace --bins

# Nothing of the machine: pure crates, laws, the house's rules, the page's functions.
quick:
	@tools/test --tier quick

# The real thing once in each kind; as root, or the tests that need root say so and are skipped.
test: packages
	@tools/test --tier test

# What must pass before a change lands.
check: packages fmt clippy deny site
	@tools/test --tier check --slowest 20

fmt:
	cargo fmt --all -- --check

clippy: packages
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Licences, banned and duplicate crates, their sources; advisories where their database can be reached. cargo-deny is
# compiled once for all clones of a user.
deny:
	@tools/deny

# The documents as a site with a search, in target/book, every link followed; mdBook likewise.
site:
	@tools/site

# What takes too long for every change: two hundred kills in place of ten, and as many closed terminals, comparisons and
# changed run files (25 minutes), ten minutes of soak, the collection against its
# hosts, what is shipped, made and tried from start to end, and the laboratory. As root; two to three hours on two processors.
nightly: program kills
	@tools/soak 10
	@tools/install-packages fleet
	@tools/test-fleet
	@tools/dist
	@tools/test-dist
	@tools/test --tier nightly
	@tools/install-packages ublk
	@tools/test-lab

kills: program
	@SPINDLE_KILLS=200 tools/test kill
	@SPINDLE_ENDINGS=200 tools/test ending::
	@SPINDLE_SWAPS=50 tools/test swapped::
	@SPINDLE_COMPARISONS=200 tools/test restore::after_random
	@SPINDLE_MUTATIONS=10000 tools/test foreign::changed

# ublk, on whatever kernel this machine has: in a virtual machine with Debian's kernel, some minutes. Not part
# of `check`: it needs qemu, and a kernel from Debian's archive (tools/test-ublk says what it takes).
test-ublk: program
	@tools/test-ublk

# Settings that only newer kernels have, and two kernels as a factor: virtual machines with Debian unstable's kernel
# (tools/test-kernel --help says what it takes).
test-kernel: program
	@tools/test-kernel

# Storage stacks and owners of settings under Debian unstable's kernel with systemd, udev and tuned: a virtual machine
# (tools/test-lab --help says what it takes), and its three parts apart.
test-lab: program
	@tools/test-lab

test-lab-stacks test-lab-owners test-lab-stays: program
	@tools/test-lab $(@:test-lab-%=%)

# The database tests on MySQL, PostgreSQL 18 and MariaDB 11.8 from Debian's unstable suite, unpacked below
# target/servers: 1 GB (tools/test-servers --help says more). Nothing is installed.
test-servers: program
	@tools/test-servers

# The Ansible collection against eleven hosts on this machine, each with its own sshd and loop device: two minutes
# (tools/test-fleet --help says what it takes).
test-fleet: program
	@tools/install-packages fleet
	@tools/test-fleet

# Static binaries and Debian packages for x86_64 and aarch64, with what belongs to them, in target/dist.
dist:
	@tools/dist

# What `make dist` made, in a fresh Debian stable and under qemu (tools/test-dist --help says what it takes).
test-dist: dist
	@tools/test-dist

# Whether hours of trials and programs that are killed leave nothing behind: MINUTES=120 for a recorded run
# (tools/soak --help says what it looks at).
MINUTES = 10
soak: program
	@tools/soak $(MINUTES)

# All schedulers of this kernel on an emulated disk, in under four minutes.
demo: program
	@tools/demo

# The published experiments in a quick size, half an hour at most: figures go to data/classics, and pages are rendered
# from them (docs/classics). As root also those under this host's kernel.
classics: build
	@tools/classics
	@target/release/spindle documents --write

# The simulated world beside the emulated one, eleven minutes; see docs/science/simulation.md.
validate: build
	@target/release/spindle validate

# Whether a screening of 40 drawn matrices finds the winner; see docs/reference/screening.md.
screening: packages
	cargo bench --locked -p runner --bench screening -- 40

# The page's code, from web/src: only after changing it. Needs Node.
page: packages
	cd web && npm ci --no-audit --no-fund --silent
	cd web && npm run --silent types && npm run --silent check && npm run --silent build

# Ratios against peers in the same run; see docs/science/performance.md.
bench: packages
	cargo bench --locked -p load
	cargo bench --locked -p device
	cargo bench --locked -p blocklayer
	cargo bench --locked -p emulate
	cargo bench --locked -p simulate
	cargo bench --locked -p database

clean:
	cargo clean
