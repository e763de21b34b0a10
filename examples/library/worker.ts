import { type ClientError, createClient, type KeysClient } from 'svc-api/client';

interface Env {
  /** The address of svc-api, such as https://keys.example.org. */
  KEYS_SERVER: string;
  /** The secret of a key with API_KEY:READ_ANY, set as a secret of the Worker. */
  KEYS_TOKEN: string;
}

let keys: KeysClient | undefined;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    keys ??= createClient({ server: env.KEYS_SERVER, token: env.KEYS_TOKEN });
    // Cloudflare sets this header. Without an address, keys limited to networks are refused.
    const address = request.headers.get('cf-connecting-ip') ?? undefined;
    const checked = await keys.check(request, { permission: 'SERVICES:READ_ANY', address });
    if (checked.ok) return Response.json({ by: checked.principal.apiKey.name });
    if (checked.cause) report(checked.cause);
    return checked.response();
  },
};

function report({ code, message }: ClientError): void {
  console.error(`${code}: ${message}`);
}
