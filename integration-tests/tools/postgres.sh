# A PostgreSQL that lives as long as one run of the tests: own data, own port, loopback only. It waits for no disk, because
# none of its data outlives the machine. Sourced by integration-tests/run.

postgres_home=''
postgres_pid=''

# Prints the folder of the newest server programs.
postgres_programs() {
    local newest
    newest=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort --version-sort | tail -n 1)
    [[ -x $newest ]] || newest=$(command -v initdb) || return
    dirname "$(readlink -f "$newest")"
}

# PostgreSQL refuses to run as root, so root becomes the account of the Debian package.
as_server=()
if ((EUID == 0)); then as_server=(setpriv --reuid=postgres --regid=postgres --init-groups); fi

# start_postgres LOG: starts a server and exports its address as REVEILLE_TEST_POSTGRES.
start_postgres() {
    local log=$1 programs password port
    programs=$(postgres_programs) || { echo "initdb is missing" && return 1; }
    # Not under target: the path of a Unix socket may have only some hundred letters.
    postgres_home=$(mktemp -d /tmp/reveille-postgres.XXXXXX) || return
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "$password" >"$postgres_home/password"
    if ((EUID == 0)); then chown -R postgres "$postgres_home" || return; fi
    "${as_server[@]}" "$programs/initdb" --pgdata "$postgres_home/data" --username reveille \
        --pwfile "$postgres_home/password" --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 || return
    for _ in 1 2 3 4 5; do
        # Below the range from which the kernel gives ports to the tests.
        port=$((20000 + RANDOM % 12000))
        if launch_postgres "$programs" "$port" "$log"; then
            export REVEILLE_TEST_POSTGRES=postgres://reveille:$password@127.0.0.1:$port/postgres
            echo "listening on 127.0.0.1:$port"
            return
        fi
    done
    tail -n 20 "$log"
    return 1
}

# launch_postgres PROGRAMS PORT LOG: true when the server answers; false when it ended, as when the port is in use.
launch_postgres() {
    local programs=$1 port=$2 log=$3
    # The server is told to stop when this shell is gone, however that came about. A plain command, so that `$!` is the
    # server and not a shell around it.
    "${as_server[@]}" setpriv --pdeathsig INT "$programs/postgres" -D "$postgres_home/data" -p "$port" -k "$postgres_home" \
        -c listen_addresses=127.0.0.1 -c max_connections=600 -c fsync=off -c full_page_writes=off >>"$log" 2>&1 &
    postgres_pid=$!
    for _ in {1..300}; do
        if "$programs/pg_isready" --quiet --host "$postgres_home" --port "$port"; then return; fi
        if ! kill -0 "$postgres_pid" 2>/dev/null; then break; fi
        sleep 0.1
    done
    end_postgres
    return 1
}

# Disconnects clients and ends the server.
end_postgres() {
    if [[ -n $postgres_pid ]]; then
        kill -INT "$postgres_pid" 2>/dev/null
        wait "$postgres_pid" 2>/dev/null
    fi
    postgres_pid=''
}

# Ends the server if it runs and removes its data.
stop_postgres() {
    end_postgres
    if [[ -n $postgres_home ]]; then rm -rf "$postgres_home"; fi
    postgres_home=''
}
