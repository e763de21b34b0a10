import { keys } from '../../../keys';

export const dynamic = 'force-dynamic';

/**
 * A route handler. Next does not know the client's address, but a proxy in front of it does: use a header that the
 * proxy always sets, whatever the client sent. Without such a proxy, leave the address out.
 */
export async function GET(request: Request): Promise<Response> {
  const address = request.headers.get('x-real-ip') ?? undefined;
  const checked = await (await keys()).check(request, { permission: 'SERVICES:READ_ANY', address });
  if (!checked.ok) return checked.response();
  return Response.json({ by: checked.principal.apiKey.name }, { headers: checked.headers });
}
