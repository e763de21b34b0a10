import { openEdge } from 'svc-api';

const keys = await openEdge({ origin: 'https://keys.example.org', tokenFile: '/run/secrets/edge.key', maxStale: '1s' });

/** Checks keys here, without a request elsewhere. `bearerAuth` accepts these keys as well. */
export async function isAllowed(secret: string): Promise<boolean> {
  return (await keys.check({ secret }, { permission: 'SERVICES:READ_ANY' })).ok;
}
