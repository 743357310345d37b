# `make demo` and `make test` are all that a newcomer needs; both install what is missing.

.PHONY: all packages build check fmt clippy deny test test-ublk test-kernel test-lab test-lab-stacks test-lab-owners test-lab-stays test-servers test-fleet soak nightly dist test-dist site demo classics validate screening page bench clean

all: build

packages:
	@tools/install-packages

build: packages
	cargo build --release --locked

# What must pass before a change lands.
check: fmt clippy deny site test

fmt:
	cargo fmt --all -- --check

clippy: packages
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Licences, banned and duplicate crates, their sources; advisories where their database can be reached. The first time
# compiles cargo-deny: four minutes of processor time.
deny: packages
	@tools/deny

# Real loop devices, real filesystems; as root, or the tests that need root say so and are skipped.
test: packages
	@tools/test

# ublk, on whatever kernel this machine has: in a virtual machine with Debian's kernel, some minutes. Not part
# of `check`: it needs qemu, and a kernel from Debian's archive (tools/test-ublk says what it takes).
test-ublk: packages
	cargo build --locked -p cli
	@tools/test-ublk

# Settings that only newer kernels have, and two kernels as a factor: virtual machines with Debian unstable's kernel
# (tools/test-kernel --help says what it takes).
test-kernel: packages
	cargo build --locked -p cli
	@tools/test-kernel

# Storage stacks and owners of settings under Debian unstable's kernel with systemd, udev and tuned: a virtual machine
# (tools/test-lab --help says what it takes), and its three parts apart.
test-lab: packages
	cargo build --locked -p cli
	@tools/test-lab

test-lab-stacks test-lab-owners test-lab-stays: packages
	cargo build --locked -p cli
	@tools/test-lab $(@:test-lab-%=%)

# The database tests on MySQL, PostgreSQL 18 and MariaDB 11.8 from Debian's unstable suite, unpacked below
# target/servers: half an hour at most and 1 GB (tools/test-servers --help says more). Nothing is installed.
test-servers: packages
	cargo build --locked -p cli
	@tools/test-servers

# The Ansible collection against eleven hosts on this machine, each with its own sshd and loop device: two minutes
# (tools/test-fleet --help says what it takes).
test-fleet: packages
	@tools/install-packages fleet
	cargo build --locked -p cli
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
soak: packages
	cargo build --locked -p cli
	@tools/soak $(MINUTES)

# What takes too long for every change: ten minutes of soak, the collection against its hosts, and what is shipped, made
# and tried from start to end. As root; an hour where two processors compile the shipped programs.
nightly: packages
	cargo build --locked -p cli
	@tools/soak 10
	@tools/install-packages fleet
	@tools/test-fleet
	@tools/dist
	@tools/test-dist

# The documents as a site with a search, in target/book, every link followed. The first time compiles mdBook:
# three minutes of processor time.
site:
	@tools/site

# All schedulers of this kernel on an emulated disk, in under four minutes.
demo: build
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
