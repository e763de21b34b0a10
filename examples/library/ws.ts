import { createServer } from 'node:http';
import { openKeys } from 'svc-api';
import { WebSocketServer } from 'ws';

const keys = await openKeys();
const sockets = new WebSocketServer({ noServer: true });
const server = createServer((_req, res) => res.writeHead(426).end());

// An upgrade is a separate event that middleware does not see.
server.on('upgrade', async (req, socket, head) => {
  const checked = await keys.check(req, { permission: 'SERVICES:READ_ANY' });
  if (!checked.ok) {
    const headers = Object.entries({ ...checked.headers, 'content-length': Buffer.byteLength(checked.body) });
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    socket.end(`HTTP/1.1 ${checked.status} Refused\r\nconnection: close\r\n${lines}\r\n${checked.body}`);
    return;
  }
  sockets.handleUpgrade(req, socket, head, (ws) => {
    ws.on('message', async (data) => {
      // The key may have been deleted, or lost permissions, since the connection was opened.
      const again = await checked.checkAgain();
      if (again.ok) ws.send(`${again.principal.apiKey.name} says ${String(data)}`);
      else ws.close(1008, again.message);
    });
  });
});
server.listen(Number(process.env['PORT']), '127.0.0.1');
