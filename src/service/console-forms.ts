/** Which forms of the console were sent, for the process that its workers share. */
export { type AnsweredForm, type FormAnswer, RecentForms, type SentForms } from '../features/console/recent-forms.ts';
