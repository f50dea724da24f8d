#!/usr/bin/env bash
# Boots a Debian systemd in a container over this machine's own files, installs the units of systemd/ there, and proves:
# the service starts and is ready when systemctl says so; a good reload is applied; a bad one makes `systemctl reload`
# fail with the reason while the old configuration serves on; stop is orderly; a restart keeps the data.
#
#   tests/systemd/nspawn.sh target/debug/kenter
#
# Needs root, systemd and systemd-container; changes nothing of this machine (an overlay takes all writes).
set -euo pipefail

kenter=$(realpath "${1:?usage: $0 path/to/kenter}")
here=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "SKIPPED: needs root"; exit 0; }
for program in systemd-nspawn /lib/systemd/systemd; do
  command -v "$program" >/dev/null || { echo "SKIPPED: needs $program"; exit 0; }
done

work=$(mktemp -d)
root=$work/disk/root
clean() {
  umount -l "$root" 2>/dev/null || true
  umount -l "$work/disk" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
mkdir "$work/disk"
mount -t tmpfs tmpfs "$work/disk"
mkdir "$work/disk/upper" "$work/disk/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/disk/upper,workdir=$work/disk/work" "$root"

install -m 755 "$kenter" "$root/usr/bin/kenter"
mkdir -p "$root/etc/systemd/system/kenter.service.d" "$root/usr/lib/sysusers.d" "$root/usr/lib/tmpfiles.d"
install -m 644 "$here/systemd/kenter.service" "$root/etc/systemd/system/"
install -m 644 "$here/systemd/kenter.service.d/10-hardening.conf" "$root/etc/systemd/system/kenter.service.d/"
install -m 644 "$here/systemd/sysusers.conf" "$root/usr/lib/sysusers.d/kenter.conf"
install -m 644 "$here/systemd/tmpfiles.conf" "$root/usr/lib/tmpfiles.d/kenter.conf"
rm -rf "$root/var/lib/kenter" "$root/etc/kenter"
mkdir -p "$root/etc/kenter/kenter.d"
echo '[serving]' >"$root/etc/kenter/kenter.toml"

cat >"$root/prove.sh" <<'PROOF'
#!/usr/bin/env bash
exec >/proof 2>&1
fail() { echo "FAILED: $*"; systemctl status kenter --no-pager -n 30; journalctl -u kenter --no-pager -n 60; exit 1; }
say() { echo "ok: $*"; }
drop_in=/etc/kenter/kenter.d/50.toml
state() { systemctl show kenter -p "$1" --value; }
generation() { journalctl -u kenter --no-pager -o cat | grep -o 'generation=[0-9]*' | tail -1; }

systemctl start kenter || fail "it does not start"
[ "$(state ActiveState)" = active ] || fail "it is not active"
grep -q "$(state MainPID)" <(pgrep -u kenter) || fail "it does not run as its user"
say "started, ready, as user kenter: $(state StatusText)"

printf '[serving]\nmax_requests_inflight = 321\n[reload]\nwatch = false\n' >$drop_in
systemctl reload kenter || fail "a good reload fails"
[ "$(state ActiveState)" = active ] || fail "it is not active after a reload"
say "a good reload: $(generation)"
before=$(generation)

printf '[serving]\nmax_requests_inflight = "many"\n' >$drop_in
if systemctl reload kenter; then fail "a bad reload succeeds"; fi
[ "$(state ActiveState)" = active ] || fail "a bad reload ended it"
case "$(state StatusText)" in *"reload failed"*50.toml*) ;; *) fail "the status does not say why: $(state StatusText)" ;; esac
journalctl -u kenter --no-pager | grep -q "the old configuration serves on" || fail "the journal does not say why"
[ "$(generation)" = "$before" ] || fail "the generation changed"
say "a bad reload fails, says why and changes nothing: $(state StatusText)"

rm $drop_in
systemctl reload kenter || fail "mended, it still fails"
pid=$(state MainPID)
sleep 35
[ "$(state MainPID)" = "$pid" ] && [ "$(state NRestarts)" = 0 ] || fail "the watchdog ended it"
say "alive beyond the watchdog's interval"

systemctl stop kenter || fail "it does not stop"
[ "$(state Result)" = success ] || fail "its end was no success: $(state Result)"
say "stopped"
printf '[serving]\nmax_requests_inflight = "many"\n' >$drop_in
if systemctl start kenter; then fail "it starts with a bad configuration"; fi
journalctl -u kenter --no-pager | grep -q '50.toml:2' || fail "the check before the start does not say why"
say "a bad configuration is refused before the start"
rm $drop_in
systemctl reset-failed kenter
systemctl start kenter || fail "it does not start again"
systemctl stop kenter
echo PROVED
PROOF
chmod 755 "$root/prove.sh"
cat >"$root/etc/systemd/system/prove.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/prove.sh
ExecStopPost=/bin/systemctl poweroff --no-block
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"

timeout 300 systemd-nspawn --quiet --register=no --keep-unit --console=pipe --private-network --directory="$root" \
  --boot systemd.unit=prove.service systemd.wants=multi-user.target >"$work/console" 2>&1 </dev/null || true
cat "$root/proof" 2>/dev/null || { tail -40 "$work/console"; echo "FAILED: the container did not come up"; exit 1; }
grep -q '^PROVED$' "$root/proof"
