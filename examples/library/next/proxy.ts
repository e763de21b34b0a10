import { type NextRequest, NextResponse } from 'next/server';
import { keys } from './keys';

/** What stands before the pages and handlers that `matcher` names. */
export async function proxy(request: NextRequest): Promise<Response> {
  const address = request.headers.get('x-real-ip') ?? undefined;
  const checked = await (await keys()).check(request, { permission: 'DOCKER:READ_ANY', address });
  return checked.ok ? NextResponse.next({ headers: checked.headers }) : checked.response();
}

export const config = { matcher: '/private/:path*' };
