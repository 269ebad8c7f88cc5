#!/usr/bin/env bash
# Start a throw-away SLURM cluster on this machine: munged, slurmctld and one slurmd a node, all on 127.0.0.1.
# For tests: as root, without systemd, cgroups or accounting. Stop it with stop_cluster.sh FOLDER.
#
#   start_cluster.sh FOLDER NODES CPUS MEM_MB GPUS
#
# FOLDER   its state: configuration, logs, process ids, and the nodes' own temporary folders; made anew
# NODES    named node1, node2 ...
# CPUS, MEM_MB, GPUS   what each node claims to have: the cores need not exist, the GPUs are links to /dev/null
set -euo pipefail

[ $# = 5 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
NODES=$2 CPUS=$3 MEM_MB=$4 GPUS=$5
rm -rf "$1"
mkdir -p "$1"
FOLDER=$(cd "$1" && pwd)
mkdir -p "$FOLDER"/{etc,run,log,spool,state,gpu,tmp}
chmod 755 "$FOLDER" "$FOLDER"/{etc,run,log,spool,state}
export SLURM_CONF=$FOLDER/etc/slurm.conf
# Ports of this folder's own.
PORT=$((10000 + $(cksum <<<"$FOLDER" | cut -d" " -f1) % 90 * 100))

# Nodes are reached by name, as the ranks of a job reach the first of them. In place: a container mounts this file.
hosts=$(sed '/# longca test cluster$/d' /etc/hosts)
printf '%s\n127.0.0.1 %s # longca test cluster\n' "$hosts" "$(seq -s ' ' -f 'node%g' "$NODES")" >/etc/hosts

head -c 128 /dev/urandom >"$FOLDER/etc/munge.key"
chmod 400 "$FOLDER/etc/munge.key"
munged --force --key-file="$FOLDER/etc/munge.key" --socket="$FOLDER/run/munge.sock" \
    --pid-file="$FOLDER/run/munged.pid" --log-file="$FOLDER/log/munged.log" \
    --seed-file="$FOLDER/run/munge.seed" 2>"$FOLDER/log/munged.err"

# slurmd takes a device or a link to one for a GPU, no plain file.
for i in $(seq 0 $((GPUS - 1))); do ln -s /dev/null "$FOLDER/gpu/nvidia$i"; done
cat >"$FOLDER/etc/gres.conf" <<CONF
AutoDetect=off
NodeName=node[1-$NODES] Name=gpu File=$FOLDER/gpu/nvidia[0-$((GPUS - 1))]
CONF

cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued job starts again once its credential has expired: after 5 s, not 2 minutes.
AuthInfo=socket=$FOLDER/run/munge.sock,cred_expire=5
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool/%n
SlurmctldPidFile=$FOLDER/run/slurmctld.pid
SlurmdPidFile=$FOLDER/run/slurmd.%n.pid
SlurmctldLogFile=$FOLDER/log/slurmctld.log
SlurmdLogFile=$FOLDER/log/slurmd.%n.log
TaskProlog=$FOLDER/etc/task_prolog.sh
Epilog=$FOLDER/etc/epilog.sh
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
# Memory is looked at once a second; a step over its request is killed.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=2
# Finished jobs stay in squeue, which Snakemake asks.
MinJobAge=3600
KillWait=5
ReturnToService=2
SlurmdTimeout=60
SlurmdParameters=config_overrides
DefMemPerCPU=1000
GresTypes=gpu
NodeName=node[1-$NODES] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((PORT + 10))-$((PORT + 9 + NODES))] CPUs=$CPUS RealMemory=$MEM_MB Gres=gpu:$GPUS State=UNKNOWN
PartitionName=main Nodes=node[1-$NODES] Default=YES DefaultTime=10 MaxTime=INFINITE State=UP
CONF

# A job's srun finds the default configuration alone: Snakemake drops SLURM_CONF from a job's environment.
mkdir -p /etc/slurm
ln -s "$SLURM_CONF" /etc/slurm/slurm.conf

# Temporary files are a node's own, as on real ones.
cat >"$FOLDER/etc/task_prolog.sh" <<SH
#!/bin/bash
mkdir -p "$FOLDER/tmp/\$SLURMD_NODENAME"
echo "export TMPDIR=$FOLDER/tmp/\$SLURMD_NODENAME"
SH

# Without cgroups a process that left its step's tree outlives the job. Only a job's own processes know where it was submitted.
cat >"$FOLDER/etc/epilog.sh" <<'SH'
#!/bin/bash
for folder in /proc/[0-9]*; do
    known=$(tr '\0' '\n' 2>/dev/null <"$folder/environ" | grep -cx -e "SLURM_JOB_ID=$SLURM_JOB_ID" -e 'SLURM_SUBMIT_DIR=.*')
    [ "$known" = 2 ] && kill -9 "${folder#/proc/}"
done 2>/dev/null
exit 0
SH
chmod 755 "$FOLDER"/etc/*.sh

slurmctld -c
for i in $(seq "$NODES"); do
    mkdir -p "$FOLDER/spool/node$i"
    slurmd -N "node$i"
done
for _ in $(seq 150); do
    [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" = "$NODES" ] && exit 0
    sleep 0.2
done
echo "start_cluster.sh: the nodes did not come up; the last lines of $FOLDER/log:" >&2
tail -n 5 "$FOLDER"/log/*.log >&2
exit 1
