import { keys } from '../../../keys';

export const dynamic = 'force-dynamic';

/**
 * A route handler. Next tells no address of the client. The proxy in front of it does, in a header that it sets whatever
 * the client sent: without one, leave the address out.
 */
export async function GET(request: Request): Promise<Response> {
  const address = request.headers.get('x-real-ip') ?? undefined;
  const checked = await (await keys()).check(request, { permission: 'DOCKER:READ_ANY', address });
  if (!checked.ok) return checked.response();
  return Response.json({ by: checked.principal.apiKey.name }, { headers: checked.headers });
}
