import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ClientAddresses, peerOf } from '../../src/http/client-address.ts';
import { headerValue } from '../../src/http/received.ts';
import { growthOf } from '../support/cpu.ts';
import { tempFolder } from '../support/temp.ts';

const TRUST = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '2001:db8:ffff::/48'];

/** The client address for these header lines and this peer. */
function addressOf(peer: string | undefined, lines: readonly string[], trust = TRUST) {
  const raw = lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
  return new ClientAddresses(trust).of({ peer: () => peer, header: (name) => headerValue(raw, name) });
}

describe("the client's address", () => {
  const certain: [lines: string[], address: string][] = [
    [[], '127.0.0.1'],
    [['X-Forwarded-For: 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: 6.6.6.6, 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: 6.6.6.6', 'X-Forwarded-For: 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: 6.6.6.6,192.0.2.1,10.1.2.3 , 10.9.9.9'], '192.0.2.1'],
    [['X-Forwarded-For: 127.0.0.1, 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: nonsense, 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: , 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: ", 192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: 10.1.1.1, 10.2.2.2'], '10.1.1.1'],
    [['X-Forwarded-For:'], '127.0.0.1'],
    [['X-Forwarded-For: 192.0.2.1:4711'], '192.0.2.1'],
    [['X-Forwarded-For: 2001:DB8:0:0:0::1'], '2001:db8::1'],
    [['X-Forwarded-For: [2001:db8::1]'], '2001:db8::1'],
    [['X-Forwarded-For: [2001:db8::1]:443'], '2001:db8::1'],
    [['X-Forwarded-For: "[2001:db8::1]:443"'], '2001:db8::1'],
    [['X-Forwarded-For: "6.6.6.6, 7.7.7.7", "192.0.2.1:80"'], '192.0.2.1'],
    [['X-Forwarded-For: 192.0.2.9, ::ffff:10.0.0.1'], '192.0.2.9'],
    [['X-Forwarded-For: ::ffff:c000:201'], '192.0.2.1'],
    [['X-Forwarded-For: 192.0.2.1, 2001:db8:ffff::5'], '192.0.2.1'],
    [['Forwarded: for=192.0.2.1'], '192.0.2.1'],
    [['Forwarded: For="192.0.2.1:80"; proto=https;by=10.0.0.1'], '192.0.2.1'],
    [['Forwarded: for=6.6.6.6, for="[2001:db8::1]:4711";host="a, b;c"'], '2001:db8::1'],
    [['Forwarded: for=6.6.6.6', 'Forwarded: host=example.org;for=192.0.2.1', 'Forwarded: for=10.0.0.1'], '192.0.2.1'],
    [['Forwarded: for=", for=192.0.2.1'], '192.0.2.1'],
    [['Forwarded: for=6.6.6.6;host="x\\", for=192.0.2.1;host="y"'], '192.0.2.1'],
    [['Forwarded: for=unknown, for=192.0.2.1'], '192.0.2.1'],
    [['X-Forwarded-For: 6.6.6.6, 192.0.2.1', 'Forwarded: for=6.6.6.7, for=192.0.2.1'], '192.0.2.1'],
    [
      ['X-Real-IP: 6.6.6.6', 'True-Client-IP: 6.6.6.6', 'X-Client-IP: 6.6.6.6', 'X_Forwarded_For: 6.6.6.6'],
      '127.0.0.1',
    ],
  ];
  for (const [lines, address] of certain)
    it(`behind a proxy is ${address}: ${lines.join(' + ') || 'no header'}`, () =>
      assert.deepEqual(addressOf('127.0.0.1', lines), { address, isCertain: true }));

  const unclear: [lines: string[], why: string][] = [
    [['X-Forwarded-For: 192.0.2.1, unknown'], 'a word'],
    [['X-Forwarded-For: 192.0.2.1, unix:'], 'a Unix socket'],
    [['X-Forwarded-For: nonsense, 10.0.0.1'], 'nonsense behind a trusted address'],
    [['X-Forwarded-For: 192.0.2.256'], 'too large a number'],
    [['X-Forwarded-For: 192.0.2.010'], 'octal'],
    [['X-Forwarded-For: 3221225985'], 'one number'],
    [['X-Forwarded-For: 192.0.2.1/32'], 'a network'],
    [['X-Forwarded-For: [192.0.2.1]'], 'IPv4 in brackets'],
    [['X-Forwarded-For: [2001:db8::1'], 'half a bracket'],
    [['X-Forwarded-For: 2001:db8::1%eth0'], 'a zone'],
    [['X-Forwarded-For: 192.0.2.1:'], 'half a port'],
    [['X-Forwarded-For: "192.0.2.1'], 'half a quote'],
    [['X-Forwarded-For: "192.0.2.\\1"'], 'an escape'],
    [['X-Forwarded-For: "192.0.2.1", ""'], 'an empty quote'],
    [['X-Forwarded-For: 192.0.2.1 192.0.2.2'], 'no comma'],
    [['Forwarded: for=unknown'], 'a word'],
    [['Forwarded: for=_hidden'], 'a name'],
    [['Forwarded: for=192.0.2.1;for=192.0.2.2'], 'two addresses in one element'],
    [['Forwarded: proto=https'], 'none'],
    [['Forwarded: 192.0.2.1'], 'no parameter'],
    [['Forwarded: for=192.0.2.1 nonsense'], 'nonsense behind it'],
    [['Forwarded: for="192.0.2.1'], 'half a quote'],
    [['Forwarded: for="192.0.2.\\1"'], 'an escape'],
  ];
  for (const [lines, why] of unclear)
    it(`is the proxy's, and not certain, where that has noted ${why}: ${lines.join()}`, () =>
      assert.deepEqual(addressOf('127.0.0.1', lines), {
        address: '127.0.0.1',
        isCertain: false,
        unclear: `${lines[0]!.split(':')[0]!} names no address`,
      }));

  it('is not certain where the two headers differ: the client can write the one that its proxy does not', () => {
    const plain = 'X-Forwarded-For: 192.0.2.1';
    const differ = 'X-Forwarded-For and Forwarded name different addresses';
    for (const [forwarded, unclear] of [
      ['for=6.6.6.6', differ],
      ['for=10.0.0.1', differ],
      ['for=nonsense', 'Forwarded names no address'],
      ['', differ],
    ] as const)
      assert.deepEqual(addressOf('10.0.0.1', [plain, `Forwarded: ${forwarded}`]), {
        address: '192.0.2.1',
        isCertain: false,
        unclear,
      });
    const malformed = ['X-Forwarded-For: nonsense', 'Forwarded: for=192.0.2.1'];
    assert.deepEqual(addressOf('10.0.0.1', malformed), {
      address: '10.0.0.1',
      isCertain: false,
      unclear: 'X-Forwarded-For names no address',
    });
  });

  it("is the connection's where that does not come from a trusted proxy", () => {
    const lines = ['X-Forwarded-For: 10.0.0.1', 'Forwarded: for=10.0.0.1'];
    for (const peer of ['192.0.2.7', '2001:db8::7', 'fe80::7%eth0'])
      assert.deepEqual(addressOf(peer, lines), { address: peer, isCertain: true });
    assert.deepEqual(addressOf('127.0.0.1', lines, []), { address: '127.0.0.1', isCertain: true });
    assert.deepEqual(addressOf('10.0.0.1', lines, undefined), { address: '10.0.0.1', isCertain: true });
  });

  it('is unknown without a connection', () =>
    assert.deepEqual(addressOf(undefined, ['X-Forwarded-For: 10.0.0.1']), { address: undefined, isCertain: false }));

  it('trusts only this machine by default', () => {
    const request = (peer: string) => ({ peer: () => peer, header: () => '192.0.2.1' });
    for (const peer of ['127.0.0.1', '127.9.9.9', '::1'])
      assert.equal(new ClientAddresses().of(request(peer)).address, '192.0.2.1', peer);
    for (const peer of ['10.0.0.1', '192.168.0.1', '::2', '128.0.0.1'])
      assert.equal(new ClientAddresses().of(request(peer)).address, peer);
  });

  it('needs networks', () =>
    assert.throws(
      () => new ClientAddresses(['10.0.0.0/8', 'proxy.example.org']),
      new RangeError('"proxy.example.org" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.'),
    ));

  it('costs no more than the length of the headers to find', () => {
    const texts = [',', ' ', '"', '";', 'for=', '10.0.0.1,', 'for=10.0.0.1,', '[', ':', 'a=b;', 'a="b";', '\\'];
    const growth = growthOf((length) => {
      for (const text of texts)
        for (const name of ['X-Forwarded-For', 'Forwarded'])
          addressOf('10.0.0.1', [`${name}: ${text.repeat(length / text.length)}`]);
    }, 1000);
    assert.ok(growth < 8, `${growth} times as long for 4 times as much`);
  });
});

describe('the other end of a connection', () => {
  it('has an address, IPv4 as IPv4', async () => {
    for (const [host, from] of [
      ['127.0.0.1', '127.0.0.1'],
      ['::', '127.0.0.1'],
    ] as const) {
      const server = createServer((incoming, outgoing) => outgoing.end(peerOf(incoming.socket)));
      server.listen(0, host);
      await once(server, 'listening');
      const response = await fetch(`http://${from}:${(server.address() as AddressInfo).port}/`);
      assert.equal(await response.text(), from);
      server.close();
    }
  });

  it('is this machine on a Unix socket', async () => {
    const socketPath = join(tempFolder(), 's');
    const server = createServer((incoming, outgoing) => outgoing.end(peerOf(incoming.socket))).listen(socketPath);
    await once(server, 'listening');
    const [response] = await once(httpRequest({ socketPath }).end(), 'response');
    assert.equal(String(await response.toArray()), '127.0.0.1');
    server.close();
  });

  it('is unknown once it has reset the connection', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const [{ socket }] = (await once(server, 'request')) as [IncomingMessage];
    socket.on('error', () => {});
    client.resetAndDestroy();
    await new Promise((resolve) => socket.on('close', resolve));
    assert.equal(peerOf(socket), undefined);
    server.close();
  });
});
