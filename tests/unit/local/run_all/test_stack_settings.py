"""Tests for the ports and the data folder of a stack."""

import socket
from dataclasses import astuple

import pytest

from local.run_all.stack_settings import FREE_PORTS, Ports, StackError, read_stack_settings, settle_ports


def test_without_settings_the_documented_ports_are_used() -> None:
    settings = read_stack_settings({})
    assert settings.ports == Ports(7071, 7072, 7073, 10000, 10001, 10002)
    assert settings.data.parts[-2:] == (".local", "data")


def test_one_variable_frees_all_ports_but_those_that_are_set() -> None:
    assert read_stack_settings({"GROUNDWORK_HTTP_PORT": "0"}).ports == FREE_PORTS
    moved = read_stack_settings({"GROUNDWORK_HTTP_PORT": "9000", "GROUNDWORK_BLOB_PORT": "9001"})
    assert moved.ports == Ports(9000, 0, 0, 9001, 0, 0)
    assert read_stack_settings({"GROUNDWORK_HTTP_PORT": "7071"}).ports == Ports()


@pytest.mark.parametrize("text", ["eighty", "-1", "70000", "7071.0", "٧٠٧١"])
def test_a_port_that_is_none_is_refused_by_the_name_of_its_setting(text: str) -> None:
    with pytest.raises(StackError, match="GROUNDWORK_SEARCH_PORT"):
        read_stack_settings({"GROUNDWORK_SEARCH_PORT": text})


def test_two_servers_on_one_port_are_refused_by_both_names() -> None:
    environment = {"GROUNDWORK_HTTP_PORT": "9000", "GROUNDWORK_BLOB_PORT": "9000"}
    with pytest.raises(StackError, match="GROUNDWORK_HTTP_PORT and GROUNDWORK_BLOB_PORT are both 9000"):
        read_stack_settings(environment)


def test_free_ports_are_all_different() -> None:
    chosen = astuple(settle_ports(FREE_PORTS))
    assert len(set(chosen)) == 6
    assert all(port > 0 for port in chosen)


def test_a_busy_port_is_reported_by_the_name_of_the_setting_to_change() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        busy_port = other.getsockname()[1]
        with pytest.raises(
            StackError, match=f"Port {busy_port} is in use.*GROUNDWORK_TABLE_PORT.*HTTP_PORT=0"
        ):
            settle_ports(Ports(0, 0, 0, 0, 0, busy_port))
