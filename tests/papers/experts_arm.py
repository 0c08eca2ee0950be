"""The forward dynamics of a four-joint arm in three dimensions, simulated: what the slides' robot problem is.

The slides give no masses, lengths or ranges. These are chosen so that a linear regression leaves about the printed .31
of the variance: yaw, pitch and roll at the shoulder, and an elbow; positions, velocities and torques in, accelerations
out. The arm's equations are solved by Newton-Euler recursion, the mass matrix column by column.

Reference: Featherstone (2008), Rigid Body Dynamics Algorithms, chapters 5 and 6.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.numerics.jit import kernel

N_JOINT = 4
AXIS = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
ORIGIN = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
MASS = np.array([0.0, 0.0, 2.0, 1.4])
CENTRE = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.14, 0.0, 0.0], [0.16, 0.0, 0.0]])
INERTIA = np.array(
    [np.diag(d) for d in ([0.01] * 3, [0.01] * 3, [0.004, 0.017, 0.017], [0.002, 0.013, 0.013])], np.float64
)
GRAVITY = 9.81
POSITION, VELOCITY, TORQUE = 0.5, 3.8, np.array([2.0, 2.0, 0.5, 1.0])
"""Half ranges; positions around `REST`, in radians."""
REST = np.array([0.0, 0.3, 0.0, 1.2])


@kernel
def _rotation(axis, angle):
    c, s = math.cos(angle), math.sin(angle)
    x, y, z = axis
    d = 1.0 - c
    return np.array(
        [
            [c + x * x * d, x * y * d - z * s, x * z * d + y * s],
            [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
            [z * x * d - y * s, z * y * d + x * s, c + z * z * d],
        ]
    )


@kernel
def _cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@kernel
def _torques(position, velocity, acceleration, gravity, arm):
    """Return the torques that give some accelerations: motion outwards along the arm, forces back."""
    axis, origin, mass, centre, inertia = arm
    n = position.size
    turn = np.zeros((n, 3, 3))
    force, moment = np.zeros((n, 3)), np.zeros((n, 3))
    spin, spin_change, shift = np.zeros(3), np.zeros(3), np.array([0.0, 0.0, gravity])
    for i in range(n):
        turn[i] = _rotation(axis[i], position[i])
        back = turn[i].T.copy()
        shift = back @ (shift + _cross(spin_change, origin[i]) + _cross(spin, _cross(spin, origin[i])))
        before = back @ spin
        spin_change = back @ spin_change + _cross(before, axis[i] * velocity[i]) + axis[i] * acceleration[i]
        spin = before + axis[i] * velocity[i]
        at_centre = shift + _cross(spin_change, centre[i]) + _cross(spin, _cross(spin, centre[i]))
        force[i] = mass[i] * at_centre
        moment[i] = inertia[i] @ spin_change + _cross(spin, inertia[i] @ spin)
    out, pull, twist = np.zeros(n), np.zeros(3), np.zeros(3)
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            pull = turn[i + 1] @ pull
            twist = turn[i + 1] @ twist + _cross(origin[i + 1], pull)
        twist = moment[i] + _cross(centre[i], force[i]) + twist
        pull = force[i] + pull
        out[i] = twist @ axis[i]
    return out


@kernel
def _fill_accelerations(position, velocity, torque, gravity, arm, out):
    still = np.zeros(position.shape[1])
    for row in range(out.shape[0]):
        bias = _torques(position[row], velocity[row], still, gravity, arm)
        matrix = np.zeros((still.size, still.size))
        for j in range(still.size):
            unit = np.zeros(still.size)
            unit[j] = 1.0
            matrix[:, j] = _torques(position[row], still, unit, 0.0, arm)
        out[row] = np.linalg.solve(matrix, torque[row] - bias)


def simulate(n_row: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, float64 (n_row, 12), and accelerations, float64 (n_row, 4)."""
    rng = np.random.default_rng(seed)
    position = REST + rng.uniform(-POSITION, POSITION, (n_row, N_JOINT))
    velocity = rng.uniform(-VELOCITY, VELOCITY, (n_row, N_JOINT))
    torque = rng.uniform(-1.0, 1.0, (n_row, N_JOINT)) * TORQUE
    out = np.empty((n_row, N_JOINT))
    _fill_accelerations(position, velocity, torque, GRAVITY, (AXIS, ORIGIN, MASS, CENTRE, INERTIA), out)
    return np.hstack([position, velocity, torque]), out
