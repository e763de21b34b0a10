import express from 'express';
import { openKeys } from 'svc-api';
import { bearerAuth } from 'svc-api/express';

const app = express();
// Put body parsers after it. It also works on a router or a route.
app.use('/backups', bearerAuth({ keys: await openKeys(), permission: 'SERVICES:READ_ANY' }), express.json());
app.get('/backups/latest', (req, res) => void res.json({ by: req.principal?.apiKey.name }));
app.post('/backups/new', async (req, res) => {
  // A body can take long to arrive: this answers the request itself if the key is no longer valid.
  if (await req.checkAgain?.()) res.json({ disk: req.body.disk });
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
