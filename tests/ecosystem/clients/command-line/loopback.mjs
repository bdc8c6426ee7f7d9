// Loaded before a program of node: it reaches this machine alone. Every other attempt fails, and is noted in the file that
// OUTSIDE names, because programs pass over failures of what they do beside their work.
import { appendFileSync } from 'node:fs';
import { BlockList, Socket } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
const isHere = (host) => host === 'localhost' || loopback.check(host) || loopback.check(host, 'ipv6');

const connect = Socket.prototype.connect;
Socket.prototype.connect = function (...args) {
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  const wanted = typeof first === 'object' ? first : { port: first, host: second };
  const host = wanted.host ?? 'localhost';
  if (wanted.path === undefined && !isHere(host)) {
    appendFileSync(process.env.OUTSIDE, `${host}:${wanted.port}\n`);
    queueMicrotask(() => this.destroy(new Error(`${host} is not this machine`)));
    return this;
  }
  return connect.apply(this, args);
};
