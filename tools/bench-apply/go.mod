module bench-apply

go 1.25
