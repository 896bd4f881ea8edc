#!/usr/bin/env bash
# Make sure that Chromium is there for the browser tests. Never fails: without it those tests are skipped.
set -u

# The names that the `chromium` fixture in tests/conftest.py looks for.
found() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1

quietly_apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@" >/dev/null 2>&1
}

found && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'Installing Chromium for the browser tests ...'
    quietly_apt_get update
    quietly_apt_get install -y chromium
fi

found || cat >&2 <<'TXT'

  ####################################################################
  #                                                                  #
  #   NO CHROMIUM FOUND: the browser tests will be SKIPPED.          #
  #                                                                  #
  #   To run them, install it and try again:                         #
  #     Debian, Ubuntu:  sudo apt-get install chromium               #
  #     Fedora:          sudo dnf install chromium                   #
  #     macOS:           brew install --cask chromium                #
  #                                                                  #
  ####################################################################

TXT
exit 0
