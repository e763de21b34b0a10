import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';

const READ = '?permission=GRAFANA:READ_ANY';

for (const proxy of ALL_PROXIES) {
  const header = proxy === 'envoy' ? 'x-envoy-external-address' : 'X-Forwarded-For';
  const isIt = (line: string) => line.toLowerCase().startsWith(`${header.toLowerCase()}:`);
  const own = ASKING[proxy]({}, READ);
  const without = { ...own, headers: own.headers.filter((line) => !isIt(line)) };
  /** The proxy's request with a header for each of these texts about the client's address. */
  const saying = (...said: readonly string[]) => withHeaders(without, ...said.map((text) => `${header}: ${text}`));

  describe(`the address of a client of ${proxy}`, () => {
    let server: AskedServer;
    let key: string;
    before(async () => {
      const trust = ['127.0.0.0/8', '::1/128', '192.0.2.0/24'];
      server = await startAskedServer({ trust, config: { limits: { default: [], failedCredentials: '3/d' } } });
      const input = {
        name: 'Near',
        permissions: ['GRAFANA:READ_ANY'],
        allowFrom: ['203.0.113.0/24', '2001:db8::/32'],
      } as const;
      key = keyLine((await server.keys.create(input, OPERATOR)).key);
    });
    after(() => server.stop());

    const statusOf = async (...said: string[]) => (await server.send(withHeaders(saying(...said), key))).status;

    it('is what the proxy says in the header of its contract', async () => {
      for (const [said, expected] of [
        ['203.0.113.7', 200],
        ['203.0.113.7:4711', 200],
        ['"[2001:db8::7]:443"', 200],
        ['2001:db8::7', 200],
        ['[2001:db8::7]:4711', 200],
        ['198.51.100.1', 403],
        // The last entry that is not a trusted proxy.
        ['203.0.113.7, 192.0.2.1', 200],
        ['198.51.100.1, 203.0.113.7', 200],
        ['203.0.113.7, 198.51.100.1', 403],
        ['unknown, 203.0.113.7', 200],
        ['192.0.2.1', 403],
      ] as const)
        assert.deepEqual([said, await statusOf(said)], [said, expected]);
    });

    it('is unknown if that is missing, repeated or invalid, whatever other headers say', async () => {
      const forged = [
        'Forwarded: for=203.0.113.7',
        'X-Real-IP: 203.0.113.7',
        'X-Client-IP: 203.0.113.7',
        'True-Client-IP: 203.0.113.7',
        'X_Forwarded_For: 203.0.113.7',
        ...(proxy === 'envoy' ? ['X-Forwarded-For: 203.0.113.7'] : ['X-Envoy-External-Address: 203.0.113.7']),
      ];
      const asked = [
        saying(),
        saying('203.0.113.7', '203.0.113.7'),
        saying(''),
        saying('unknown'),
        saying('203.0.113.7, '),
        saying('203.0.113.7, unknown'),
        saying('203.0.113.7, 192.0.2.1, _hidden'),
        saying('localhost'),
        saying('203.0.113'),
        saying('203.0.113.7 198.51.100.1'),
      ];
      // An empty entry is ignored (RFC 9110, section 5.6.1).
      const expected = asked.map((_, index) => (index === 4 ? 200 : 403));
      for (const [index, asking] of asked.entries())
        for (const lines of [[], forged])
          assert.deepEqual(
            [index, (await server.send(withHeaders(asking, key, ...lines))).status],
            [index, expected[index]],
          );
      await server.keys.finishActivity();
      const entries = await server.keys.audit.read({}, OPERATOR);
      const addresses = new Set(entries.map(({ address }) => address));
      assert.deepEqual([addresses.has('unknown'), addresses.has('127.0.0.1')], [true, false]);
    });

    it('counts failed attempts of all whose address is unknown together, at no cost of valid keys', async () => {
      const attempts = async (...said: string[]) =>
        (await server.send(withHeaders(saying(...said), keyLine('wrong')))).status;
      assert.deepEqual(
        [await attempts(), await attempts('unknown'), await attempts('a', 'b'), await attempts(), await attempts('x')],
        [401, 401, 401, proxy === 'nginx' ? 403 : 429, proxy === 'nginx' ? 403 : 429],
      );
      assert.equal(await attempts('198.51.100.9'), 401);
      const anywhere = await server.keys.create({ name: 'Anywhere', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
      assert.equal((await server.send(withHeaders(saying(), keyLine(anywhere.key)))).status, 200);
    });

    it('is explained in the log if the header has none', async () => {
      const input = { name: 'Explained', permissions: ['GRAFANA:READ_ANY'], allowFrom: ['203.0.113.0/24'] } as const;
      const explained = keyLine((await server.keys.create(input, OPERATOR)).key);
      server.lines.length = 0;
      for (const said of ['unknown', '2001:db8::7%eth0', 'x'.repeat(4000)])
        assert.equal((await server.send(withHeaders(saying(said), explained))).status, 403, said);
      const [{ fields } = {}] = server.lines;
      const { reason, detail } = fields as { reason: string; detail: string };
      const name = proxy === 'envoy' ? 'X-Envoy-External-Address' : 'X-Forwarded-For';
      assert.deepEqual({ reason, detail }, { reason: 'address', detail: `${name} names no address` });
    });

    it("is never the proxy's own in the log", async () => {
      server.lines.length = 0;
      await server.send(withHeaders(saying(), key, 'X_Auth_Roles: a'));
      await server.send(withHeaders(saying('203.0.113.8'), key, 'X_Auth_Roles: b'));
      assert.deepEqual(
        server.lines.map(({ fields }) => (fields as { address: string }).address),
        ['unknown', '203.0.113.8'],
      );
    });
  });
}
