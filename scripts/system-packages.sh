#!/bin/sh
# Debian packages that the tests use. Installed only where they are missing and this user can; otherwise one line
# says what to install, and with CI=true the tests that need them fail rather than skip.
set -eu
packages="$(grep -v '^#' scripts/system-packages.txt | tr '\n' ' ')"
missing=""
for package in $packages; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "Some tests need these packages:$missing"
fi
