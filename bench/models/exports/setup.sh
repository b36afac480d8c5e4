# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh for set c: sets |exporter| to the option of tables.py that names an interpreter with PyTorch (6 GB
# under build/clients), to none where that is neither installed nor to be had; models that are made are measured then.
. test/clients/python.bash
outcome=0
(python_with torch_exports "${TORCH_PACKAGES[@]}") >&2 || outcome=$?
case $outcome in
  0) exporter=(--exporter "$PWD/build/clients/torch_exports/venv/bin/python") ;;
  77) ;;  # It has said why.
  *) exit "$outcome" ;;
esac
export PYTHONPATH=$PYTHONPATH:$PWD/test/clients  # torch_exports.py
