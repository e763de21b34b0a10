import { createServer } from 'node:http';
import { openKeys } from 'svc-api';
import { type AuthenticatedRequest, bearerAuth } from 'svc-api/express';

const auth = bearerAuth({ keys: await openKeys(), credentials: ['bearer', { header: 'X-Api-Key' }] });
const server = createServer((req, res) =>
  // The third argument handles requests with a valid key. If all requests require the same permission, pass that to
  // bearerAuth, which then answers 403 itself. If it depends on the request, check it here.
  auth(req, res, () => {
    const { principal } = req as AuthenticatedRequest;
    if (principal.can('SERVICES:READ_ANY')) res.end(JSON.stringify({ by: principal.apiKey.name }));
    else res.writeHead(403).end();
  }),
);
server.listen(Number(process.env['PORT']), '127.0.0.1');
