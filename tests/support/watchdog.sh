#!/usr/bin/env bash
# Waits for the end of whoever started it, then kills its own process group and removes the folder that $0 names.
#
# A pipe closes whichever way its holder ends (return, panic, SIGKILL), so reading standard input to its end covers
# every case, and as it is the only way of cleaning up, every test exercises it. The kernel's parent-death signal would
# need no shell, but it follows the thread that started the child, and the threads of tests and runtimes come and go.
#
# Everything in the sandbox joins this shell's process group: its number cannot pass to others while this shell lives,
# and grandchildren are included.
read -r _
# Gives the block below a process group of its own: it outlives the kill.
set -m
{
    kill -KILL -- "-$$"
    # Again while it fails: a process that is just dying may be in the middle of writing there.
    for _ in {1..100}; do
        rm -rf -- "$0" 2>/dev/null && break
        sleep 0.05
    done
} &
wait
