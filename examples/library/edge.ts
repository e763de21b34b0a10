import { openEdge } from 'svc-api';

const keys = await openEdge({ origin: 'https://keys.example.org', tokenFile: '/run/secrets/edge.key', maxStale: '1s' });

/** Keys are checked here, without a request elsewhere: `bearerAuth` takes these keys as well. */
export async function isAllowed(secret: string): Promise<boolean> {
  return (await keys.check({ secret }, { permission: 'DOCKER:READ_ANY' })).ok;
}
