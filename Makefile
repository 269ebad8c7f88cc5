# Everything from a fresh clone: `make` sets up and runs the default study, `make test` tests. `make help` lists the rest.

VENV := .venv
# The environment's set, cpu or cuda: what is asked for, else what stands installed, else cpu.
SET ?= $(or $(patsubst $(VENV)/installed-%,%,$(wildcard $(VENV)/installed-cpu $(VENV)/installed-cuda)),cpu)
SETS := cpu cuda
STUDY ?= config/smoke.yaml
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
PYTHON_FILES := workflow tests benchmarks
RULE_FILES := Snakefile rules
# Rules type `longca` and `snakemake` as a person does, so the environment's commands come first.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

ifeq ($(filter $(SET),$(SETS)),)
$(error SET=$(SET) is no environment; allowed: $(SETS))
endif

.PHONY: study env test lint format extra slurm clean help

study: $(VENV)/installed-$(SET)  ## set up, then run a study into results/ (default; STUDY=config/smoke.yaml)
	# Masks, measurements, tables, figures, report; what is done already is not done again.
	snakemake all --profile profiles/local --configfile $(STUDY)

env: $(VENV)/installed-$(SET)  ## make .venv from the pinned sets of envs/ (SET=cpu or SET=cuda)

test: $(VENV)/installed-test  ## run all tests that this machine can run
	pytest

lint: $(VENV)/installed-test  ## check formatting, common mistakes and types
	ruff check $(PYTHON_FILES)
	ruff format --check $(PYTHON_FILES)
	snakefmt --check --line-length 110 $(RULE_FILES)
	mypy

format: $(VENV)/installed-test  ## format the code
	ruff check --fix $(PYTHON_FILES)
	ruff format $(PYTHON_FILES)
	snakefmt --line-length 110 $(RULE_FILES)

extra: $(VENV)/installed-$(SET)  ## install an optional library, as NAME=huggingface or NAME=kernels/flashinfer
	$(PIP) --no-build-isolation -r envs/$(NAME).txt

slurm: $(VENV)/installed-$(SET)  ## install Snakemake's SLURM executor, which profiles/slurm needs
	$(PIP) --no-deps -r envs/slurm.txt

clean:  ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache workflow/*.egg-info
	find workflow tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	# A Python from 3.11 to 3.13 gets a virtual environment in $(VENV); nothing outside this folder is touched.
	bash envs/make_venv.sh $(VENV)

# Another set than the one installed replaces it: its stamp goes, and so does that of the tests that stood upon it.
$(VENV)/installed-cpu $(VENV)/installed-cuda: $(VENV)/installed-%: envs/%.txt envs/pipeline.txt envs/analysis.txt envs/lock.txt pyproject.toml | $(VENV)/bin/python
	# The pinned $* set: about 2 minutes; PyTorch is most of the download, 200 MB to 3 GB as the index has it.
	rm -f $(VENV)/installed-*
	$(PIP) -r $< -c envs/lock.txt -e .
	touch $@

$(VENV)/installed-test: envs/test.txt envs/slurm.txt $(VENV)/installed-$(SET)
	# What only tests and checks need.
	$(PIP) -r $< -c envs/lock.txt
	$(PIP) --no-deps -r envs/slurm.txt
	touch $@
