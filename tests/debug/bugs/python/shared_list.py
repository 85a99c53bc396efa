"""Rows that are one and the same list."""


def make_board(size):
    return [[0] * size] * size  # FAULT


def mark(board, row, column):
    board[row][column] = 1


def test_marks_one_field():
    board = make_board(3)
    mark(board, 0, 1)
    assert board == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
