/** Which forms of the console were sent, for the process that its workers share. */
export { type AnsweredForm, type FormAnswer, RecentForms, type SentForms } from '../console/recent-forms.ts';
