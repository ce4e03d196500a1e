"""Errors of decisions about approvals."""

from domain.approvals.approval import Approval, ApprovalState
from domain.errors import ErrorKind, ServiceError, conflict
from domain.ids import ApprovalId


def approval_decided(approval_id: ApprovalId) -> ServiceError:
    detail = f"The approval {approval_id} is not pending any more; an approval is used once."
    return conflict("approval_decided", detail, approval_id=approval_id)


def approval_expired(approval_id: ApprovalId) -> ServiceError:
    detail = f"The approval {approval_id} has expired, which denied the call."
    return conflict("approval_expired", detail, approval_id=approval_id)


def approval_stale(approval_id: ApprovalId) -> ServiceError:
    detail = (
        f"The approval {approval_id} is stale: the agent has changed since, and the call is checked again. "
        "If it still needs an approval, the run waits for a new one."
    )
    return conflict("approval_stale", detail, approval_id=approval_id)


def approval_cancelled(approval_id: ApprovalId) -> ServiceError:
    detail = f"The approval {approval_id} is not needed any more: its run has ended."
    return conflict("approval_cancelled", detail, approval_id=approval_id)


def self_approval_forbidden(approval_id: ApprovalId) -> ServiceError:
    return ServiceError(
        "self_approval_forbidden",
        ErrorKind.FORBIDDEN,
        "The policy of this tool requires the approval of another person than the one who started the run.",
        extra={"approval_id": approval_id},
    )


def not_an_approver(approval_id: ApprovalId) -> ServiceError:
    return ServiceError(
        "not_an_approver",
        ErrorKind.FORBIDDEN,
        "The policy of this tool names who decides its approvals, and you are not among them.",
        extra={"approval_id": approval_id},
    )


def person_needed(approval_id: ApprovalId) -> ServiceError:
    return ServiceError(
        "person_required",
        ErrorKind.FORBIDDEN,
        "The policy of this tool requires the approvals of several people. An API key is none if no person created it, or "
        "if that person was deactivated or removed: sign in, or use a key that you created.",
        extra={"approval_id": approval_id},
    )


def approved_before(approval_id: ApprovalId) -> ServiceError:
    return ServiceError(
        "approved_before",
        ErrorKind.FORBIDDEN,
        "You have approved this call. The policy of its tool requires the approvals of other people, too.",
        extra={"approval_id": approval_id},
    )


def account_not_yours() -> ServiceError:
    return ServiceError(
        "account_not_yours",
        ErrorKind.FORBIDDEN,
        "This call uses the account of the person who started it. Only that person changes its arguments or fills in its "
        "forms; you may approve it as it is, deny it, or decline.",
    )


def refuse_unless_pending(approval: Approval) -> None:
    """Raise the error for the approval's state, unless it is pending."""
    match approval.state:
        case ApprovalState.PENDING:
            return
        case ApprovalState.EXPIRED:
            raise approval_expired(approval.id)
        case ApprovalState.STALE:
            raise approval_stale(approval.id)
        case ApprovalState.CANCELLED:
            raise approval_cancelled(approval.id)
        case _:
            raise approval_decided(approval.id)
