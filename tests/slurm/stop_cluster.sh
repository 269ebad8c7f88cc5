#!/usr/bin/env bash
# Stop the cluster that start_cluster.sh started: stop_cluster.sh FOLDER. Ends the processes it names in FOLDER/run, no other.
set -uo pipefail

FOLDER=$(cd "$1" && pwd) || exit 2
export SLURM_CONF=$FOLDER/etc/slurm.conf

# Jobs first: their steps outlive a slurmd.
timeout 5 scancel --full --user root 2>/dev/null
for _ in $(seq 50); do
    [ -z "$(timeout 5 squeue -h -t R,CG 2>/dev/null)" ] && break
    sleep 0.2
done

end() { # end NAME FILE: the process of that name whose number stands in the file
    local pid
    pid=$(tr -dc 0-9 <"$2" 2>/dev/null)
    [ -n "$pid" ] && grep -q "$1" "/proc/$pid/comm" 2>/dev/null || return 0
    kill "$pid" 2>/dev/null
    for _ in $(seq 50); do
        # One that has ended stays as a zombie where nobody asks for it.
        { [ -r "/proc/$pid/stat" ] && ! grep -q ') Z ' "/proc/$pid/stat"; } || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null
}
for file in "$FOLDER"/run/slurmd.*.pid; do end slurmd "$file"; done
end slurmctld "$FOLDER/run/slurmctld.pid"
end munged "$FOLDER/run/munged.pid"
[ "$(readlink /etc/slurm/slurm.conf)" = "$SLURM_CONF" ] && rm /etc/slurm/slurm.conf
hosts=$(sed '/# longca test cluster$/d' /etc/hosts)
printf '%s\n' "$hosts" >/etc/hosts
