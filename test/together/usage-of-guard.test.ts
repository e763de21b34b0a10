import { ASKING, keyLine, routeTo, startAskedServer, withHeaders } from '../features/guard/support/forward-auth.ts';
import { startGuarded } from '../features/guard/support/guard.ts';
import { describeOutcomes, PERMISSION } from '../features/usage/support/outcomes.ts';

describeOutcomes('forward-auth', async () => {
  const test = await startAskedServer({
    config: { routes: [routeTo('/**', { kind: 'all', permissions: [PERMISSION] })] },
  });
  const send = async (secret: string) =>
    (await test.send(withHeaders(ASKING.caddy({}), keyLine(secret), 'Connection: close'))).status;
  return { test, send, stop: () => test.stop() };
});

describeOutcomes('guard', async () => {
  const test = await startGuarded((_, response) => response.end('x'));
  const send = async (secret: string) =>
    (await fetch(test.url, { headers: { authorization: `Bearer ${secret}` } })).status;
  return { test, send, stop: () => test.stop() };
});
