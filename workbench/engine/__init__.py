"""The compiler with a glass wall: Graph → plan → TileProgram → liveness, allocation and trace."""
