# One verb each; `make` alone lists them. Every verb sets up what it needs on its first call.
#   make PYTHON=/path/to/python3.12 run     another interpreter than python3
#   make run ARGS=--once                    arguments for the launcher
#   make test ARGS="-k citations"           arguments for pytest
#   make ingest-report DATA=folder OUT=report.json
#   make eval DATA=folder SETS=a,b OUT=report.json LIMIT=20 ANSWERS=0 KEEP=1 BASELINE=old.json

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
SHELL := /bin/bash

PYTEST := $(BIN)/python -m pytest
NIGHTLY = $(abspath $(or $(OUT),build/nightly))

# Without bytecode files every worker of pytest rewrites all tests, and every server compiles all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help web web-check screenshot run demo test golden e2e nightly mutate fmt lint types audit docs ingest-report eval eval-quotes eval-pdf eval-tables eval-pace eval-steps eval-real budgets kills chaos fuzz attack load teams-package infra-check bench-start bench-search bench-ingestion bench-fairness bench-answer bench-sharepoint journeys clean

help:                ## list the verbs
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: .set-up-run     ## the whole stack on this machine: samples, a sample answer, then it serves until Ctrl-C
	@$(BIN)/python -m local.run_all $(ARGS)

web: .set-up-run     ## build the web page, although nothing may have changed
	@$(BIN)/python -m scripts.web_build --force

web-check: .set-up-test             ## the web page in a browser: size, speed, accessibility, security, RELOADS=30: OUT=report.json
	WEB_CHECK_OUT="$(abspath $(or $(OUT),build/web.json))" RELOADS=$(or $(RELOADS),30) $(PYTEST) -q -m e2e tests/e2e/web $(ARGS)

screenshot: .set-up-test            ## the README's picture of the web page, taken on a stack with the samples
	$(BIN)/python -m tests.e2e.web.screenshot

demo: .set-up-run    ## five questions, two users, on free ports; exit code 0 only if everything is proved
	@$(BIN)/python -m local.run_all --demo $(ARGS)

test: .set-up-test   ## lint, types, and beside them, which has one core, the quick tests
	@$(MAKE) --no-print-directory -j2 lint types .quick-tests

golden: .set-up-test                ## write the event streams of tests/golden anew, after an intended change
	$(PYTEST) -q tests/golden --update

e2e: .set-up-test    ## the tests that start the whole stack, kill things, or take minutes
	$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "e2e and not nightly" $(ARGS)

nightly: .set-up-test               ## the slow suites: mutants, kills, chaos, attacks, load, fuzz, budgets, endurance; reports in OUT=folder
	@mkdir -p $(NIGHTLY); failed=; \
	  for verb in .nightly-tests mutate kills chaos attack fuzz budgets load; do \
	    $(MAKE) --no-print-directory $$verb OUT=$(NIGHTLY)/$$verb.json || failed="$$failed $$verb"; \
	  done; \
	  [ -z "$$failed" ] || { echo "Failed:$$failed"; exit 1; }

mutate: .set-up-test                ## small changes of the pure modules that no test notices: OUT=report.json; ARGS="fusion filters"
	@$(BIN)/python -m scripts.mutate $(ARGS) --out "$(abspath $(or $(OUT),build/mutation/report.json))"

fmt: .set-up-test    ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lint: .set-up-test   ## ruff, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .set-up-test  ## mypy --strict
	$(BIN)/mypy .

audit: .set-up-run   ## whether the running local stack's files, states and indexes agree; exit code 0 only then
	@$(BIN)/python -m local.audit $(ARGS)

docs: .set-up-test   ## rewrite the generated parts of docs/
	$(BIN)/python -m scripts.docs_tables

ingest-report: .set-up-run         ## what becomes of every file of a folder: DATA=folder OUT=report.json
	@$(BIN)/python -m evals.ingest_report --data "$(DATA)" --out "$(OUT)" $(ARGS)

eval: .set-up-run    ## how right the answers are: DATA=folder SETS=a,b OUT=report.json; LIMIT, ANSWERS=0, KEEP=1, PROMPTS=1, QUERIES, BASELINE
	@$(BIN)/python -m evals.evaluation --data "$(DATA)" --sets "$(SETS)" --out "$(OUT)" $(if $(LIMIT),--limit "$(LIMIT)") \
	  $(if $(filter 0,$(ANSWERS)),--no-answers) $(if $(filter-out 0,$(KEEP)),--keep) \
	  $(if $(filter-out 0,$(PROMPTS)),--prompts) \
	  $(if $(QUERIES),--queries "$(QUERIES)") $(if $(BASELINE),--baseline "$(BASELINE)") $(ARGS)

eval-quotes: .set-up-run           ## what passes as a quotation, near misses of the data sets beside it: DATA=quotations.jsonl OUT=report.json
	@$(BIN)/python -m evals.quotes --data "$(DATA)" --out "$(OUT)" $(ARGS)

eval-pdf: .set-up-test           ## how well PDF files are read: rows in tables, words lost, similarity: DATA=folder OUT=report.json; SETS
	@$(BIN)/python -m evals.pdf_text --data "$(DATA)" --out "$(OUT)" $(if $(SETS),--sets "$(SETS)") $(ARGS)

eval-tables: .set-up-test        ## SQL over tables: gold queries, and attacks on the guard: DATA=folder OUT=report.json
	@$(BIN)/python -m evals.tables --data "$(DATA)" --out "$(OUT)" $(ARGS)

eval-pace: .set-up-run             ## sixty questions of every type at the pace of hosted models, default budgets: OUT=report.json
	@$(BIN)/python -m evals.pace --out "$(OUT)" $(ARGS)

eval-steps: .set-up-run            ## questions in several steps: which passages the model was shown: DATA=set OUT=report.json; ARGS="--questions 25"
	@$(BIN)/python -m evals.steps --data "$(DATA)" --out "$(OUT)" $(ARGS)

eval-real: .set-up-run             ## a file of questions, each run whole, through any chat endpoint: DATA=questions.jsonl OUT=report.json
	@$(BIN)/python -m evals.real --questions "$(DATA)" --out "$(OUT)" $(ARGS)

budgets: .set-up-run ## do runs keep time, tokens and cost, whatever the model does: RUNS=200 OUT=report.json; ARGS="--lanes 2"
	@$(BIN)/python -m evals.budgets --runs "$(or $(RUNS),200)" --out "$(or $(OUT),report.json)" $(ARGS)

kills: .set-up-run ## what is lost when the worker or the host is killed at work: ROUNDS=20 OUT=report.json; ARGS="--kinds worker"
	@$(BIN)/python -m evals.kills --rounds "$(or $(ROUNDS),20)" --out "$(or $(OUT),report.json)" $(ARGS)

chaos: .set-up-run   ## kills, hangs and a faulty model while people work; a checker reads the stores: ROUNDS=100 OUT=report.json
	@$(BIN)/python -m evals.chaos --rounds "$(or $(ROUNDS),100)" --out "$(or $(OUT),report.json)" $(ARGS)

fuzz: .set-up-test   ## requests made from the API's own description: CASES=5000 SEED=1 OUT=report.json
	@$(BIN)/python -m evals.fuzz --cases "$(or $(CASES),5000)" --seed "$(or $(SEED),1)" --out "$(or $(OUT),report.json)" $(ARGS)

azure-proof: .set-up-test          ## deploys into a subscription, proves it, removes it: ARGS="--subscription ID"; ARGS=--dry-run or --local
	@$(BIN)/python -m evals.azure_proof $(ARGS)

attack: .set-up-test  ## every attack that the tests know, by class: OUT=report.json; ARGS="-m 'attack and not e2e'" without the stack
	$(PYTEST) -q -p tests.attack_report --attack-out "$(or $(OUT),report.json)" -m attack $(ARGS)

load: .set-up-test   ## many people at once, at a real model's pace, against one alone: OUT=report.json USERS=50 SECONDS=120
	@$(BIN)/python -m benchmarks.load --users "$(or $(USERS),50)" --seconds "$(or $(SECONDS),120)" \
	  --out "$(or $(OUT),report.json)" $(ARGS)

infra-check: .set-up-test           ## rules and snapshots of the deployment, by Bicep's compiler; SNAPSHOTS=write takes new ones
	$(PYTEST) -q tests/infra $(ARGS)

teams-package: .set-up-test         ## the Teams app package, checked by Microsoft's schema: APP_ID=guid HOST=name OUT=file; ARGS="--name ..."
	@$(BIN)/python -m scripts.teams_package --app-id "$(APP_ID)" --host "$(HOST)" --out "$(or $(OUT),build/groundwork-teams.zip)" $(ARGS)

bench-start: .set-up-test          ## cold start: imports and agent creation
	$(BIN)/python -m benchmarks.start $(ARGS)

bench-search: .set-up-test         ## the search server beside a plain baseline; ARGS="--blocks 100000 --out report.json"
	$(BIN)/python -m benchmarks.search $(ARGS)

bench-ingestion: .set-up-test      ## pages a second: parse beside pypdf, embed, index, all; ARGS="--data folder"
	$(BIN)/python -m benchmarks.ingestion $(ARGS)

bench-fairness: .set-up-test       ## how one person's worst files delay another's file and question; ARGS="--rounds 5 --out report.json"
	$(BIN)/python -m benchmarks.fairness $(ARGS)

bench-answer: .set-up-test         ## what a question costs beside its model, by step; ARGS="--rounds 5 --out report.json"
	$(BIN)/python -m benchmarks.answer $(ARGS)

bench-sharepoint: .set-up-test     ## a library's first synchronisation beside the same files as blobs; ARGS="--files 1000 3000 --out report.json"
	$(BIN)/python -m benchmarks.sharepoint $(ARGS)

journeys: .set-up-test              ## how many files and functions of ours two journeys pass through: OUT=report.json; ARGS=--list
	@$(BIN)/python -m benchmarks.journeys $(if $(OUT),--out "$(OUT)") $(ARGS)

clean:               ## remove everything that was installed or made here
	rm -rf .venv .local .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Not files: the script itself knows, by hash, whether there is anything to do.
.PHONY: .set-up-run .set-up-test .quick-tests .nightly-tests
.set-up-run:
	@$(PYTHON) scripts/set_up.py run
.set-up-test:
	@$(PYTHON) scripts/set_up.py test
.quick-tests: .set-up-test
	$(PYTEST) -n 3 --dist loadfile -m "not e2e and not bicep" --ignore tests/e2e $(ARGS)
.nightly-tests: .set-up-test
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m nightly
