import { OperationFailed } from '../../operations.ts';
import type { Pages } from '../../page-routes.ts';
import { type ExpiryChoice, expiresAtOf, expiryChoiceIn } from '../../parts/expiry-field.tsx';
import { type ChosenGrants, chosenIn, grantsInputOf } from '../../parts/grants.ts';
import type { Visit } from '../../visit.tsx';
import { askRoles, boundsOf, findGrantable } from '../grantable.ts';
import { AgreedPage, ASKED, type Choice, DecisionPage, type DecisionIssue } from './decision-page.tsx';
import type { CodeFormState } from './list.tsx';
import { type Request, REQUEST_FIELDS } from './request.ts';

const SHOW = `query Request($userCode: String!) { consentRequest(userCode: $userCode) { ${REQUEST_FIELDS} } }`;
const AGREE = `mutation Agree($input: ApproveConsentRequestInput!) {
  approveConsentRequest(input: $input) { ${REQUEST_FIELDS} }
}`;
const REFUSE = `mutation Refuse($userCode: String!) { denyConsentRequest(userCode: $userCode) { requestId } }`;

/** Errors after which there is nothing to decide any more, or not now. */
const OVER: ReadonlySet<string | undefined> = new Set(['NOT_FOUND', 'REQUEST_DECIDED', 'TOO_MANY_REQUESTS']);

/**
 * Adds what somebody does who has the code of a request: they see it, agree to it, or to a part, or refuse. The code is
 * sent by POST alone.
 * @param showForm shows the form for a code again
 */
export function addDecisions(
  pages: Pages,
  showForm: (visit: Visit, said: CodeFormState, status?: number) => Promise<Response>,
): void {
  /** Answers, and shows the form for a code if that is good for nothing. */
  const withCode = async (visit: Visit, code: string, answer: () => Promise<Response>): Promise<Response> => {
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof OperationFailed) || !OVER.has(error.code)) throw error;
      return showForm(visit, { wrongCode: { code, message: error.message } }, error.pageStatus);
    }
  };

  pages.post('requests', async (visit) => {
    const code = (await visit.form()).get('code')?.trim() ?? '';
    return withCode(visit, code, () => showDecision(visit, code));
  });
  pages.post('requests/decide', async (visit) => {
    const form = await visit.form();
    const code = form.get('code')?.trim() ?? '';
    return withCode(visit, code, async () => {
      if (form.get('decision') !== 'refuse') return agree(visit, code, form);
      await visit.ask(REFUSE, { userCode: code });
      return visit.seeOther('requests?done=refused');
    });
  });
}

async function showDecision(
  visit: Visit,
  code: string,
  { chosen, wrong, status = 200 }: { chosen?: Choice; wrong?: DecisionIssue; status?: number } = {},
): Promise<Response> {
  const { consentRequest: request } = await visit.ask<{ consentRequest: Request }>(SHOW, { userCode: code });
  const [roles, grantable] = await Promise.all([askRoles(visit), findGrantable(visit)]);
  const content = { visit, code, request, roles, grantable, bounds: boundsOf(visit, grantable), chosen, wrong };
  return visit.page(`${request.clientName} asks for a key`, <DecisionPage {...content} />, status);
}

async function agree(visit: Visit, code: string, form: URLSearchParams): Promise<Response> {
  const bounds = boundsOf(visit, await findGrantable(visit));
  const chosen: ChosenGrants & ExpiryChoice = { ...chosenIn(form), ...expiryChoiceIn(form, bounds) };
  const expiry = expiresAtOf(chosen, bounds, ASKED);
  if ('problem' in expiry) return showDecision(visit, code, { chosen, wrong: { expiry: expiry.problem }, status: 400 });
  try {
    const input = { userCode: code, ...grantsInputOf(chosen), ...expiry };
    const { approveConsentRequest: request } = await visit.ask<{ approveConsentRequest: Request }>(AGREE, { input });
    return await visit.showOnce({ title: 'Agreed', next: 'requests' }, (root) => (
      <AgreedPage root={root} now={visit.now} request={request} />
    ));
  } catch (error) {
    if (!(error instanceof OperationFailed) || OVER.has(error.code)) throw error;
    return showDecision(visit, code, { chosen, wrong: wrongIn(error), status: error.pageStatus });
  }
}

function wrongIn({ problems, message }: OperationFailed): DecisionIssue {
  const expiry = problems.get('expiresAt');
  return expiry === undefined ? { message } : { expiry };
}
