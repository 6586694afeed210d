# A gateway with everything behind it and a small simulated fleet that takes no time, for clients that others wrote: own
# data, own port, loopback only. Sourced by integration-tests/run, which sets `binaries`, the folder with the programs.

gateway_data=''
gateway_pid=''
# Settings that a check wants besides, as arguments.
gateway_settings=()

# with_gateway LOG COMMAND...: runs the command with the URL of a new gateway as its last argument.
with_gateway() {
    local log=$1 code=0
    shift
    start_gateway "$log" || return
    "$@" "$gateway_url" || code=$?
    stop_gateway
    return $code
}

# start_gateway LOG: starts a gateway and sets gateway_url, kubernetes_url for its face of Kubernetes, flightctl_url for that
# of Flight Control, and agents_url for the agents of devices.
start_gateway() {
    local log=$1 port
    gateway_data=$(mktemp -d) || return
    for _ in 1 2 3 4 5; do
        # Below the range from which the kernel gives ports to clients.
        port=$((20000 + RANDOM % 12000))
        gateway_url=http://127.0.0.1:$port
        kubernetes_url=https://127.0.0.1:$((port + 1))
        flightctl_url=https://127.0.0.1:$((port + 2))
        agents_url=https://127.0.0.1:$((port + 3))
        if launch_gateway "$port" "$log"; then return; fi
    done
    tail -n 20 "$log"
    stop_gateway
    return 1
}

# launch_gateway PORT LOG: true when the gateway is ready; false when it ended, as when the port is in use.
launch_gateway() {
    local port=$1 log=$2 part listen=()
    for part in component_registry session_manager status_evaluator power_controller config_coordinator host_provisioner fleet_manager insight simulator; do
        listen+=(--set "$part.listen=127.0.0.1:0")
    done
    # It is told to stop when this shell is gone, however that came about.
    setpriv --pdeathsig TERM "$binaries/reveille" serve --data-dir "$gateway_data" \
        --set "gateway.listen=127.0.0.1:$port" --set "gateway.kubernetes.listen=127.0.0.1:$((port + 1))" \
        --set "gateway.flightctl.listen=127.0.0.1:$((port + 2))" --set "gateway.agents.listen=127.0.0.1:$((port + 3))" \
        "${listen[@]}" \
        --set simulator.nodes=8 --set simulator.speed=0 "${gateway_settings[@]}" >>"$log" 2>&1 &
    gateway_pid=$!
    for _ in {1..300}; do
        if gateway_is_ready "$port"; then return; fi
        if ! kill -0 "$gateway_pid" 2>/dev/null; then break; fi
        sleep 0.1
    done
    end_gateway
    return 1
}

# gateway_is_ready PORT: true when what is behind it has answered.
gateway_is_ready() {
    local answer
    # In a shell of its own, which closes the connection and says nothing about one that is refused.
    answer=$(
        exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1" || exit
        printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
        head -n 1 <&3
    )
    [[ $answer == *' 200 '* ]]
}

end_gateway() {
    if [[ -n $gateway_pid ]]; then
        kill -TERM "$gateway_pid" 2>/dev/null
        wait "$gateway_pid" 2>/dev/null
    fi
    gateway_pid=''
}

# Ends the gateway if it runs and removes its data.
stop_gateway() {
    end_gateway
    if [[ -n $gateway_data ]]; then rm -rf "$gateway_data"; fi
    gateway_data=''
}
