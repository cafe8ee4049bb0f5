#!/usr/bin/env bash
# First process of a machine made of namespaces: NAME ADDRESS FOLDER. Everything here is seen inside only.
set -euo pipefail
name=$1 address=$2 folder=$3
hostname "$name"
mkdir -p "$folder"/{log,cni,kubelet,containerd,etc,etc.work,libexec,libexec.work} /var/lib/cni /var/lib/kubelet

# Control groups: the ones this process was put into are the roots that kubelet and runc see.
umount -R /sys
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
for controller in cpu cpuacct cpuset memory devices freezer blkio pids; do
  mkdir /sys/fs/cgroup/$controller
  mount -t cgroup -o $controller cgroup /sys/fs/cgroup/$controller
done

# The kubelet sets some switches of the whole kernel and stops when it may not. Shown here are files
# that hold what it wants, in folders that cannot be written.
for part in vm kernel; do
  mount --bind /proc/sys/$part /proc/sys/$part
  mount -o remount,bind,ro /proc/sys/$part
done
show() {
  echo "$2" > "$folder/switch-${1//\//-}"
  mount --bind "$folder/switch-${1//\//-}" "/proc/sys/$1"
}
show vm/overcommit_memory 1
show vm/panic_on_oom 0
show kernel/panic 10
show kernel/panic_on_oops 1
show kernel/keys/root_maxkeys 1000000
show kernel/keys/root_maxbytes 25000000

# Places that these programs write to by fixed names.
mount -t tmpfs -o mode=755 tmpfs /run
mount -t overlay -o "lowerdir=/etc,upperdir=$folder/etc,workdir=$folder/etc.work" overlay /etc
mount -t overlay -o "lowerdir=/usr/libexec,upperdir=$folder/libexec,workdir=$folder/libexec.work" overlay /usr/libexec
mount --bind "$folder/log" /var/log
mount --bind "$folder/cni" /var/lib/cni
mount --bind "$folder/kubelet" /var/lib/kubelet
rm -f /etc/resolv.conf
echo "nameserver ${DNS:-10.99.0.1}" > /etc/resolv.conf
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" > /etc/hosts
mount --make-rshared /

# A network without a way out. Nodes may not have a loopback address, so an empty bridge carries theirs.
ip link set lo up
ip link add node0 type bridge
ip addr add "$address/24" dev node0
ip link set node0 up
ip route add default dev node0
echo 1 > /proc/sys/net/ipv4/ip_forward

touch "$folder/ready"
trap 'exit 0' TERM
while :; do
  sleep 3600 &
  wait $!
done
